module github.com/seed7f3f3bb8/holdfast

go 1.26.0
